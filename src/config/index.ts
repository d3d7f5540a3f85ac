export {
  type ExplainedSecret,
  type ExplainedSetting,
  type Explanation,
  explainPipeline,
  type Origin,
} from './explain.ts'
export { pipelineJsonSchema } from './json-schema.ts'
export type { Overrides } from './override.ts'
export { type PipelineSettings, pipelineFrom, type ReadOptions, readPipeline } from './read-pipeline.ts'
export { checkRequirements, readNamingKey, type Surroundings } from './requirements.ts'
export { type Environment, learnSecrets, readMaskKey, readSecret } from './secrets.ts'
export { serviceFromEnvironment } from './service-from-environment.ts'
export { settingFault } from './setting-fault.ts'
export { readSigningKey, readVerifyingKey } from './signing-key.ts'
export { type StarterAnswers, starterPipeline } from './starter.ts'
