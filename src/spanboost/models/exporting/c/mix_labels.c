/* A weighted mean of forecasts and of regressions over them, in the model's units. */
struct mix_labels {
    int experts, regressions;
    const double *weights;
    double low, high;
    const double *const *factor; /* lower triangles, or 0 */
    const double *moment;
    double ratio;
    double shift; /* of the mean, for quantiles */
};

static double mix_clip(const struct mix_labels *m, double x)
{
    x = x > m->low ? x : m->low;
    return x < m->high ? x : m->high;
}

/* Return a - b; 0 if that can be a rounding error. */
static double mix_subtract(double a, double b)
{
    double size = fabs(a) > fabs(b) ? fabs(a) : fabs(b);
    return fabs(a - b) > 1e-12 * size ? a - b : 0.0;
}

static double mix_regression(const struct mix_labels *m, const double *L, const double *x)
{
    double v[MOST_FORECASTS], size = 0, answer = 0;
    int K = m->experts;
    for (int i = 0; i < K; i++) {
        double rest = x[i];
        for (int k = 0; k < i; k++)
            rest -= L[i * K + k] * v[k];
        v[i] = rest / L[i * K + i];
    }
    for (int i = K - 1; i >= 0; i--) {
        double rest = v[i];
        for (int k = i + 1; k < K; k++)
            rest -= L[k * K + i] * v[k];
        v[i] = rest / L[i * K + i];
        size += v[i] * x[i];
        answer += v[i] * m->moment[i];
    }
    return answer / (1 + m->ratio * size);
}

/* forecasts[output][expert] */
static void mix_labels(const struct mix_labels *m, const double *forecasts, double *out)
{
    int K = m->experts;
    for (int c = 0; c < OUTPUTS; c++) {
        double candidate[MOST_FORECASTS], x[MOST_FORECASTS], total = 0, mean = 0;
        for (int k = 0; k < K; k++)
            candidate[k] = mix_clip(m, forecasts[c * K + k]);
        for (int k = 0; k < K; k++) {
            total += m->weights[k];
            mean += m->weights[k] * candidate[k];
        }
        mean /= total;
        for (int k = 0; k < K; k++)
            x[k] = mix_subtract(candidate[k], mean);
        for (int s = 0; s < m->regressions; s++)
            candidate[K + s] =
                mix_clip(m, mean + (m->factor[s] ? mix_regression(m, m->factor[s], x) : 0.0));
        out[c] = 0;
        for (int k = 0; k < K + m->regressions; k++)
            out[c] += m->weights[k] * candidate[k];
        if (m->shift != 0)
            out[c] = mix_clip(m, out[c] + m->shift);
    }
}
