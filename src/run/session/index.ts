export { openSession, type Session } from './session.ts'
