/**
 * Whether tests that strike at every place of a kind do so at each of them (`FAULT_ALL=1 npm run test:fault`), or at some
 * of each sort, so that the suite stays short.
 */
export const THOROUGH = process.env.FAULT_ALL === '1'
