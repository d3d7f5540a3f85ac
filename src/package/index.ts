export { encoderBuild } from './encoder-build.ts'
export { packageFile, version } from './package-file.ts'
