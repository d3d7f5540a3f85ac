export { type Cpu, openCpu, type SharedCpu, shareCpu } from './cpu.ts'
