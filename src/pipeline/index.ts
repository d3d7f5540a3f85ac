export { frozenSettings, sinceBegun, unreadable, withFrozen } from './frozen.ts'
export type { Begun, BegunChain, PlannedChain } from './plan/chains.ts'
export { type Plan, planPartitions, waitingWindows, windowAt } from './plan/plan.ts'
export {
  pipelineFrom,
  type ReadOptions,
  readPipeline,
  readPlace,
} from './read-pipeline.ts'
export { checkRequirements, requireConsent } from './requirements.ts'
export { serviceFromEnvironment } from './resolve/resolve-service.ts'
export { resolvedSettings } from './resolved-settings.ts'
export { parseWindowLength } from './schema/extract-keys.ts'
export { type PipelineSettings, pipelineJsonSchema } from './schema/file-schema.ts'
export {
  catalogVariables,
  type Environment,
  learnSecrets,
  maskKeyFault,
  needsMaskKey,
  readKeyOf,
  readMaskKey,
  readSecret,
  readSigningKey,
  readVerifyingKey,
} from './secrets/secrets.ts'
export { IN_STORE } from './stores.ts'
export { readSubmitted, submittedFile } from './submitted-file.ts'
export { AGE_EXPECTED, ago, pruneBefore } from './values/ages.ts'
export type { Overrides } from './yaml/read-tree.ts'
