"""The update: learner, rules on whole gradients, and the numbers every update records."""
