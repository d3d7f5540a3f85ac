export { evidenceTar, type PackedEvidence } from './evidence/index.ts'
