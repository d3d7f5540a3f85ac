// Imported dynamically, where help does not come. The index as a whole would load every command.
export { describeDataSet, readVerdict, recordFailedStart, requireFit } from '../../data-set/index.ts'
