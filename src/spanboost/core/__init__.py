"""The paper: both algorithms, their feedback, and the loop that runs them."""
