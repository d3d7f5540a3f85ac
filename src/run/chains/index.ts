export { type Ending, exportAll, statusFor } from './export-all.ts'
export { MonthNotes } from './month-notes.ts'
export { leastSearches, Tally } from './tally.ts'
