import { defineConfig } from 'rolldown'

// The command is bundled with what it needs: finding and opening three hundred files takes longer than most
// commands do. See docs/decisions/0007-bundled-command.md.
export default defineConfig({
  input: [
    'src/cli/main.ts',
    'src/disk/look-worker.ts',
    'src/run/cpu/decode-worker.ts',
    'src/run/cpu/encode-worker.ts',
  ],
  platform: 'node',
  logLevel: 'warn',
  // Loaded only when a pipeline asks for it; not made to be bundled.
  external: ['parquetjs-lite'],
  output: { dir: 'dist/cli', format: 'esm', chunkFileNames: '[name]-[hash].js' },
})
