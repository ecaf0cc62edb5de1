/* Return the number of days before the year after `years` whole years of the calendar. */
static int64_t days_of_years(int64_t years)
{
    return 365 * years + years / 4 - years / 100 + years / 400;
}

/* Set the four numbers of a time in microseconds since 1970 (UTC, the years 1 to 9999): days since
 * 2020, hour, weekday (0 is Monday) and day of the year. Use NaN for a missing time. */
void NAME_time(int64_t microseconds, double *numbers)
{
    const int64_t hour = INT64_C(3600000000), whole = 24 * hour;
    int64_t day = microseconds / whole - (microseconds % whole < 0);
    int64_t days = day + 719162, years = days / 366; /* since the first day of the year 1 */
    while (days_of_years(years + 1) <= days)
        years++;
    numbers[0] = (double)(microseconds - 18262 * whole) / (double)whole;
    numbers[1] = (double)(microseconds - day * whole) / (double)hour;
    numbers[2] = (double)((days + 7) % 7);
    numbers[3] = (double)(days - days_of_years(years) + 1);
}
