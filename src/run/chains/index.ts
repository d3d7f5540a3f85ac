export { type Ending, exportAll, statusFor } from './export-all.ts'
export { Tally } from './tally.ts'
