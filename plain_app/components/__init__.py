"""Small pieces of screen that several views use."""
