export { evidenceTar, type PackedEvidence } from './evidence-tar.ts'
