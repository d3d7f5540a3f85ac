// Imported dynamically, where help does not come. The index as a whole would load every command.
export { DataSet, recordFailedStart, requireFit, WritableDataSet } from '../../data-set/index.ts'
