import { expect } from 'chai';
import { ResponseItems } from '../../lib/wire/ResponseItems.ts';

describe('ResponseItems', () => {
  describe('knows whether a text that comes whole is new', () => {
    it('as it is where no deltas came', () => {
      const items = new ResponseItems();
      expect([items.partEnded(), new ResponseItems().itemEnded()]).to.deep.equal([true, true]);
    });

    it('as it is not where its deltas came, at the end of its part and of its item', () => {
      const items = new ResponseItems();
      items.sawText();
      expect([items.partEnded(), items.itemEnded()]).to.deep.equal([false, false]);
      items.sawText();
      expect(items.itemEnded()).to.equal(false);
    });

    it('as it is not in an item whose part came whole', () => {
      const items = new ResponseItems();
      expect([items.partEnded(), items.itemEnded()]).to.deep.equal([true, false]);
    });

    it('part by part, and item by item', () => {
      const items = new ResponseItems();
      items.sawText();
      items.partEnded();
      expect(items.partEnded()).to.equal(true);
      items.sawText();
      items.itemEnded();
      expect([items.itemEnded(), items.partEnded()]).to.deep.equal([true, true]);
    });
  });

  describe('knows the call that an event belongs to', () => {
    it('by its item, and by its place where the item is not named', () => {
      const items = new ResponseItems();
      expect(items.note({ id: 'fc_1', call_id: 'call_1' }, 0)).to.equal('call_1');
      expect(items.note({ id: 'fc_2', call_id: 'call_2' }, 1)).to.equal('call_2');
      expect(items.idOf({ item_id: 'fc_1', output_index: 1 })).to.equal('call_1');
      expect(items.idOf({ output_index: 1 })).to.equal('call_2');
    });

    it('by the id of its item where it has none of its own', () => {
      const items = new ResponseItems();
      expect(items.note({ id: 'fc_1', call_id: 5 }, 0)).to.equal('fc_1');
      expect(items.idOf({ output_index: 0 })).to.equal('fc_1');
    });

    it('as the item that it names, where that never appeared', () => {
      expect(new ResponseItems().idOf({ item_id: 'fc_1', output_index: 0 })).to.equal('fc_1');
    });

    it('not at all where neither is named, though a call without an item appeared', () => {
      const items = new ResponseItems();
      expect(items.note({ id: 7, call_id: 'call_1' }, undefined)).to.equal('call_1');
      expect([items.idOf({}), items.idOf({ item_id: 7, output_index: '0' })]).to.deep.equal(['', '']);
    });
  });
});
