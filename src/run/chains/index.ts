export { type Ending, exportChains, statusFor } from './export-chains.ts'
export { type FailureCause, Tally } from './tally.ts'
