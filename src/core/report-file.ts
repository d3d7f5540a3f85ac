/** The report of a data set, at its root. */
export const REPORT_PATH = '_report.html'
/** How every report begins, so that nothing else is taken for one. */
export const REPORT_START = '<!doctype html>\n<!-- spillway report -->\n'
