import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Files that wait for other processes, by how long: what begins last must not be what takes longest. */
const LONGEST = [
  'fault/survives-in-object-storage',
  'cluster/survives-what-happens-to-workers',
  'cluster/organizations-do-not-wait-for-each-other',
  'fault/hostile-answers',
  'fault/survives-a-kill-while-a-row-group-is-encoded',
  'warehouse/postgres-holds-what-is-exported',
  'warehouse/duckdb-holds-what-is-exported',
  'warehouse/shards-are-loaded-as-they-are-sealed',
  'warehouse/loads-survive',
  'fault/survives-a-kill-at-every-disk-call',
  'fault/survives-a-full-disk',
  'fault/survives-kills-at-random-instants',
  'fault/takes-over-from-who-may-wake-up',
  'fault/lets-one-writer-in',
  'fault/heals-or-refuses-damaged-state',
  'fault/fuzz-state',
  'store/s3-store-conforms',
  'cluster/workers-export-what-run-does',
  'e2e/object-storage-holds-a-data-set',
  'docs/tutorial-works',
  'docs/recipes-work',
]

const PROJECTS = ['installed', 'shared']

/**
 * Begins with the files of the list; the rest as Vitest has them. Files of a project come one after the other, as a worker
 * keeps its process only for those.
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
