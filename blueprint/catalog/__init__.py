"""What is known about the world, as data with versions and sources; the code here only looks things up."""
