"""The paper's two algorithms, the feedback they give, and the loop that runs them."""
