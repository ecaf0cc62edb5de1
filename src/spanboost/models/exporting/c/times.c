/* Return the number of days before the year after `years` whole years of the calendar. */
static int64_t days_of_years(int64_t years)
{
    return 365 * years + years / 4 - years / 100 + years / 400;
}

/* Set the numbers of a time in microseconds since 1970 (UTC). The weekday 0 is Monday. A time outside
 * of the years 1 to 9999 is missing, such as INT64_MIN, the missing time of NumPy. */
void NAME_time(int64_t microseconds, double *numbers)
{
    const int64_t hour_us = INT64_C(3600000000), day_us = 24 * hour_us;
    if (microseconds < INT64_C(-62135596800000000) || microseconds > INT64_C(253402300799999999)) {
        for (int k = 0; k < COUNT; k++)
            numbers[k] = NAN;
        return;
    }
    int64_t date = microseconds / day_us - (microseconds % day_us < 0);
    int64_t since = date + 719162, years = since / 366; /* since the first day of the year 1 */
    while (days_of_years(years + 1) <= since)
        years++;
    double days = (double)(microseconds - 18262 * day_us) / (double)day_us; /* since 2020 */
    double hour = (double)(microseconds - date * day_us) / (double)hour_us;
    double weekday = (double)((since + 7) % 7);
    double yearday = (double)(since - days_of_years(years) + 1);
    PARTS;
}
