export { type Ending, exportAll, statusFor } from './export-all.ts'
export { MonthNotes } from './month-notes.ts'
export { type FailureCause, Tally } from './tally.ts'
