export { createEncoder } from './create-encoder.ts'
export {
  type EncodedRowGroup,
  type EncodePlan,
  rowGroupRows,
  type ShardEncoder,
  shardExtension,
  type WrittenRowGroup,
} from './encoder.ts'
