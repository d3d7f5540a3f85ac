export { type Begun, beginSharedRun, readSharedRunOf } from './begin.ts'
export { type Bench, type BenchOptions, openBench } from './bench.ts'
export { endSharedRun, leaveSharedRun, type SharedEnding } from './end.ts'
export { exportPart, type Part, type PartEnding } from './export-part.ts'
