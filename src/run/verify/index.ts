export { type Problem, type ProblemCause, type Verification, verifyDataSet } from './verify.ts'
