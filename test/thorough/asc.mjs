export { default } from 'assemblyscript/asc'
