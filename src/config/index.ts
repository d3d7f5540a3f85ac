export {
  type ExplainedSecret,
  type ExplainedSetting,
  type Explanation,
  explainPipeline,
  type Origin,
} from './explain.ts'
export { nearest } from './problems/nearest.ts'
export { pipelineFrom, type ReadOptions, readPipeline, readSettings, readSubmitted } from './read-pipeline.ts'
export { checkRequirements, type Dependencies, knownNamingKey, readNamingKey } from './requirements.ts'
export { serviceFromEnvironment } from './resolve/resolve-service.ts'
export { pipelineJsonSchema } from './schema/json-schema.ts'
export type { PipelineSettings } from './schema/pipeline-settings.ts'
export { type Caution, cautionsOf, isOpenToOthers } from './secrets/cautions.ts'
export { type Environment, learnSecrets, readMaskKey, readSecret } from './secrets/secrets.ts'
export { readSigningKey, readVerifyingKey } from './secrets/signing-key.ts'
export { type StarterAnswers, settingFault, starterPipeline } from './starter.ts'
export type { Overrides } from './yaml/override.ts'
