import { workersSurviveEverything } from './support/survival.ts'

workersSurviveEverything('redis')
