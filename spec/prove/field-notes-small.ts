import { SMALL_PAGE, smallPage, writePage } from './parts/fieldNotePages.ts';

const page = await smallPage();
await writePage(SMALL_PAGE, page);
console.log(page);
