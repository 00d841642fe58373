"""Components of our own, where no native widget can do the job: Python beside its JavaScript."""
