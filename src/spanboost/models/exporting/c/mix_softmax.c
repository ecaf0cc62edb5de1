/* Logarithms of a mixture of the probabilities of classes; forecasts[class][expert]. */
static void mix_softmax(int K, const double *weights, const double *forecasts, double *out)
{
    for (int c = 0; c < OUTPUTS; c++)
        out[c] = 0;
    for (int k = 0; k < K; k++) {
        double top = forecasts[k], total = 0;
        for (int c = 0; c < OUTPUTS; c++)
            top = top > forecasts[c * K + k] ? top : forecasts[c * K + k];
        for (int c = 0; c < OUTPUTS; c++)
            total += exp(forecasts[c * K + k] - top);
        top += log(total);
        for (int c = 0; c < OUTPUTS; c++)
            out[c] += weights[k] * exp(forecasts[c * K + k] - top);
    }
    for (int c = 0; c < OUTPUTS; c++)
        out[c] = log(out[c] > 1e-300 ? out[c] : 1e-300);
}
