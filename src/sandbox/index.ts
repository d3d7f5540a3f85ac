export { SandboxOptionError, type SandboxOptions } from './options.ts'
export { type Sandbox, sandboxBanner, startSandbox } from './start-sandbox.ts'
