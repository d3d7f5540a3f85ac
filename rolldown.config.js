import { defineConfig } from 'rolldown'

// Of undici the command needs its agent, which the entry point loads along with fetch, WebSocket and mocks: a tenth
// of a second that every run would pay. What the entry point puts on every dispatcher (request, connect and the like)
// is not there; extract/ uses `dispatch` alone.
const onlyTheAgent = {
  name: 'only-the-agent',
  resolveId: (id) => (id === 'undici' ? '\0undici' : null),
  load: (id) =>
    id === '\0undici'
      ? `export { default as Agent } from 'undici/lib/dispatcher/agent.js'
         export { default as buildConnector } from 'undici/lib/core/connect.js'`
      : null,
}

// What the encoders' sources come to, for the footers of Parquet files. `tsc` has compiled what computes it.
const encoderBuild = {
  name: 'encoder-build',
  async buildStart() {
    const { encoderDigest } = await import('./dist/package/encoder-build.js')
    this.emitFile({ type: 'asset', fileName: 'encoder-build.txt', source: encoderDigest() })
  },
}

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
  external: ['parquetjs-lite', '@aws-sdk/client-s3', '@duckdb/node-api', 'pg', 'pg-copy-streams'],
  plugins: [onlyTheAgent, encoderBuild],
  output: { dir: 'dist/cli', format: 'esm', chunkFileNames: '[name]-[hash].js' },
})
