export { type Cpu, openCpu } from './cpu.ts'
