import { expect, it } from 'vitest'
import { ExportError, type Pipeline } from '../../src/core/index.ts'
import { withLocation } from '../../src/data-set/open-data-set.ts'

it('names the section where load.path is not set', () => {
  const pipeline = {
    file: 'trial.yaml',
    locations: { load: 'trial.yaml:8:1' },
    load: { location: { kind: 'disk' }, pathAsGiven: 'output/trial' },
  } as unknown as Pipeline
  const error = new ExportError({
    kind: 'config',
    what: 'It is wrong',
    where: '_manifest.json',
    next: 'Mend it.',
  })
  expect(withLocation(pipeline, error).where).toBe('output/trial/_manifest.json, trial.yaml:8:1')
})
