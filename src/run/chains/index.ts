export { type Ending, exportChains, statusFor } from './export-chains.ts'
export { MonthNotes } from './month-notes.ts'
export { type FailureCause, Tally } from './tally.ts'
