//! What the node serves in each look at the rails: accesses to windows, and messages about failures.

use crate::fault::{self, Faults};
use crate::window::Serving;
use crate::world::World;
use newmadeleine::engine::Engine;
use newmadeleine::progress::{Served, Service};

/// Has the node serve what there is to be served now.
pub(crate) fn update(world: &World) {
    let windows = Serving::if_any();
    let service = (windows.is_some() || fault::is_on()).then(|| Box::new(Services { windows }) as _);
    world.node().set_service(service);
}

struct Services {
    windows: Option<Serving>,
}

impl Service for Services {
    fn serve(&mut self, engine: &mut Engine) -> Served {
        let windows = self.windows.as_mut().map_or_else(Served::default, |windows| windows.serve(engine));
        if !fault::is_on() {
            return windows;
        }
        let faults = Faults::serve(engine);
        Served { worked: windows.worked | faults.worked, waits: windows.waits | faults.waits }
    }

    fn needs_helper(&self) -> bool {
        // Survivors ask for decisions of agreements.
        self.windows.is_some() || fault::any_failed()
    }
}
