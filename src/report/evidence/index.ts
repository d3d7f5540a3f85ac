export type { Evidence } from './evidence.ts'
export { evidenceTar, type PackedEvidence } from './evidence-tar.ts'
