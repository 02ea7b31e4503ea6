export { seededRandom } from '../core/seededRandom.ts';
