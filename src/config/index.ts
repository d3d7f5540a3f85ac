export { type Caution, cautionsOf } from './cautions.ts'
export {
  type ExplainedSecret,
  type ExplainedSetting,
  type Explanation,
  explainPipeline,
  type Origin,
} from './explain.ts'
export { pipelineJsonSchema } from './json-schema.ts'
export { nearest } from './nearest.ts'
export { isOpenToOthers } from './open-secret-files.ts'
export type { Overrides } from './override.ts'

export type { PipelineSettings } from './pipeline-settings.ts'
export { pipelineFrom, type ReadOptions, readPipeline, readSettings } from './read-pipeline.ts'
export { readSubmitted } from './read-submitted.ts'

export { checkRequirements, readNamingKey, type Surroundings } from './requirements.ts'
export { type Environment, learnSecrets, readMaskKey, readSecret } from './secrets.ts'
export { serviceFromEnvironment } from './service-from-environment.ts'
export { settingFault } from './setting-fault.ts'
export { readSigningKey, readVerifyingKey } from './signing-key.ts'
export { type StarterAnswers, starterPipeline } from './starter.ts'
