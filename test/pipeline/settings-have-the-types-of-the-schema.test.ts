import { expectTypeOf, it } from 'vitest'
import type { z } from 'zod'
import type { PipelineSettings } from '../../src/pipeline/index.ts'
import type { pipelineFile } from '../../src/pipeline/schema/file-schema.ts'

// The compiler checks this file: `npm run check`.
it('the public types of settings are those that the schemas infer', () => {
  expectTypeOf<PipelineSettings>().toEqualTypeOf<z.input<typeof pipelineFile>>()
})
