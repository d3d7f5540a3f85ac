import { BaseSequencer, type TestSpecification } from 'vitest/node'

/**
 * The files that take longest. They begin first, so that none of them runs alone at the end. Files that mostly wait for
 * processes and clocks are not neighbours in the list: two of them at once would leave a processor idle.
 */
const LONGEST = [
  'cluster/survives-worker-failures',
  'fault/survives-in-object-storage',
  'store/s3-store-conforms',
  'warehouse/shards-are-loaded-as-they-are-sealed',
  'warehouse/duckdb-holds-what-is-exported',
  'warehouse/postgres-holds-what-is-exported',
  'cluster/organizations-do-not-wait-for-each-other',
  'fault/survives-a-kill-at-every-disk-call',
  'e2e/object-storage-holds-a-data-set',
  'fault/survives-a-full-disk',
  'fault/survives-a-kill-while-a-row-group-is-encoded',
  'cli/every-wait-ends-at-a-signal',
  's3/errors-are-retried-or-reported',
  'state/checkpoint-is-the-sum-of-its-lines',
  'fault/leak-hunt',
  'fault/hostile-responses',
  'fault/heals-or-refuses-damaged-state',
  'e2e/windows-share-a-chain',
  'warehouse/loads-survive',
  'fault/former-owners-are-fenced-out',
  'fault/fuzz-state',
  'cli/plan-and-check-agree-with-run',
  'run/chains-give-every-row-once',
  'load/encode-parquet-file',
  'e2e/shipped-pipelines-run',
  'fault/lets-one-writer-in',
  'docs/operations-page-is-true',
  'fault/network-limits-and-tokens',
  'e2e/every-format-holds-the-same-rows',
  'docs/tutorial-works',
  's3/uploads-of-others-are-left-alone',
  'cli/several-pipelines-each-run',
  'fault/survives-kills-at-random-instants',
  'fault/network-broken-responses',
  'fault/network-repeated-rows',
]

const PROJECTS = ['installed', 'shared']

/**
 * Sorts the files of the list first, in its order, then the others as Vitest does. Files of a project stay together,
 * because a worker keeps its process only within a project.
 */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification): number => {
      const index = LONGEST.findIndex((name) => moduleId.includes(`/test/${name}.`))
      return index < 0 ? LONGEST.length : index
    }
    const project = (file: TestSpecification): number => PROJECTS.indexOf(file.project.name)
    const sorted = await super.sort(files)
    return sorted.sort((a, b) => project(a) - project(b) || rank(a) - rank(b))
  }
}
