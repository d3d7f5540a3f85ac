export { Files, type Owner } from './files.ts'
export { fileOfSegment, holdsSegments } from './stored-file.ts'
