export { Files, type Owner } from './files.ts'
export { holdsPieces, ownerOfPiece } from './stored-file.ts'
