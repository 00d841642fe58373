"""Runs: trainings as processes that survive, and what they leave behind."""
