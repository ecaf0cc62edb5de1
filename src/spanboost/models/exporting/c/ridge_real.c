static void predict_ridge_R(const struct ridge *r, const struct row *row, int64_t mask,
                            double *numbers, double *q, real *h)
{
    int64_t at = 0, feature;
    int K = r->columns, copies = r->copies, lanes = r->fits == 1 ? OUTPUTS * copies : OUTPUTS;
    real x;
    for (int j = 0; j < K; j++)
        numbers[j] = 0;
    while (next_feature_R(row, mask, 1, &at, &feature, &x)) {
        int64_t f = find_key(r->feature, r->features, feature);
        if (f >= 0) {
            int j = (r->column[f] < 0 ? -r->column[f] : r->column[f]) - 1;
            numbers[j] += ridge_number(r, f, (double)x);
        }
    }
    for (int m = 0; m < r->fits; m++) {
        for (int j = 0; j < K; j++)
            q[j] = numbers[j];
        double leverage = ridge_solve(r->R + (int64_t)m * K * (K + 1) / 2, K, q) * r->weight[m];
        for (int i = r->fits == 1 ? 0 : m; i < (r->fits == 1 ? copies : m + 1); i++) {
            double shrink = 1 + r->missed[i] * leverage;
            for (int k = 0; k < OUTPUTS; k++) {
                int lane = r->fits == 1 ? k * copies + i : k;
                double total = 0;
                for (int j = 0; j < K; j++)
                    total += q[j] * r->c[((int64_t)m * K + j) * lanes + lane];
                h[k * copies + i] = (real)(total / shrink);
            }
        }
    }
}
