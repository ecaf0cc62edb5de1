"""The paper's two algorithms, the feedback they give, and the loop that runs them.

The setting is online learning. In round t a row x_t arrives, the booster predicts y_t in R^d, and
then a convex loss function l_t is revealed. The booster suffers the loss l_t(y_t) and learns.

A booster combines N copies A^1, ..., A^N of a weak learner: an online learner for linear losses
whose predictions have norm at most D. The weak learner is almost as good as the best function of
some class F: its regret R(T), the difference of their total losses after T rounds, grows slower
than T. The booster is almost as good as the best combination of functions in F.

- Algorithm 1 (`Span`) competes with all linear combinations. Each copy adds its prediction to the
  partial sum of the copies before it, starting at y^0 = 0:

      y^i = Pi_B((1 - sigma^i eta) y^{i-1} + eta A^i(x)).

  eta is the step size. sigma^i in [0, 1] shrinks the partial sum; online gradient descent tunes it.
  Pi_B projects onto the ball of radius B, on which the losses have the Lipschitz constant L_B.
- Algorithm 2 (`Hull`) competes with all convex combinations. It needs neither shrinkage nor
  projection, and its steps eta_i = 2 / (i + 1) are those of the Frank-Wolfe method:

      y^i = (1 - eta_i) y^{i-1} + eta_i A^i(x).

Both predict y^N. Then copy i receives the linear loss h -> (1 / L_B) grad l(y^{i-1}) . h. So it
learns to predict a descent direction of the loss at the partial sum that it is added to.

- algorithms.py: both algorithms, line by line.
- trace.py: the arrays of one round, and the gradients of the loss.
- feedback.py: the losses that the copies receive.
- projection.py: the projection onto a ball, for predictions in R and in R^d.
- loop.py: the rounds, row by row; stages.py: the same, copy by copy.
- experts.py: algorithms that combine the forecasts of several models.
"""
