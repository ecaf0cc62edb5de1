static double chance_of(double odds)
{
    odds = odds < 30 ? odds : 30;
    return 1 / (1 + exp(-(odds > -30 ? odds : -30)));
}

/* Log-odds of a mixture of probabilities: of the experts, and of a regression of the log-odds. */
static void mix_logistic(int K, const double *weights, const double *inverse,
                         const double *moment, const double *forecasts, double *out)
{
    double x[MOST_FORECASTS], mean = 0, total = 0, regression = 0, positive = 0, negative = 0;
    for (int k = 0; k < K; k++) {
        mean += weights[k] * forecasts[k];
        total += weights[k];
    }
    mean /= total;
    for (int k = 0; k < K; k++)
        x[k] = forecasts[k] - mean;
    x[K] = mean;
    x[K + 1] = 1;
    for (int i = 0; i < K + 2; i++) {
        double sum = 0;
        for (int j = 0; j < K + 2; j++)
            sum += inverse[i * (K + 2) + j] * x[j];
        regression += sum * moment[i];
    }
    regression = mean + regression;
    regression = regression < 30 ? regression : 30;
    regression = regression > -30 ? regression : -30;
    for (int k = 0; k < K + 1; k++) {
        double odds = k < K ? forecasts[k] : regression;
        positive += weights[k] * chance_of(odds);
        negative += weights[k] * chance_of(-odds);
    }
    out[0] = log(positive) - log(negative);
}
