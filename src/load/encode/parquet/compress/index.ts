export { type Codec, codec } from './codec.ts'
