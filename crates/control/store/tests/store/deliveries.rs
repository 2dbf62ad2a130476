//! Whose turn it is to have something sent.

use nimbus_control_store::WorkTurn;
use nimbus_control_testing::TestDatabase;

use crate::support::{tenant, tenant_below};

crate::for_both_isolations!(
    customers_take_turns_however_many_tenants_they_have,
    turns_of_customers
);
async fn turns_of_customers(database: TestDatabase) {
    let greedy = tenant(&database, "greedy").await;
    for number in 0..12 {
        tenant_below(&database.store, greedy, greedy, &format!("g{number}")).await;
    }
    // Whoever came first waits longest, and is not served before everybody else for it.
    let late = tenant(&database, "late").await;
    database.store.delivery_note_all().await.unwrap();
    let few = database.store.delivery_due(3).await.unwrap();
    let customers: Vec<_> = few.iter().map(|turn| turn.customer).collect();
    assert!(customers.contains(&late), "{few:?}");
    assert!(customers.contains(&greedy), "{few:?}");
    assert!(customers.contains(&database.root), "{few:?}");
    let all = database.store.delivery_due(100).await.unwrap();
    assert_eq!(all.len(), 15);
    let of_greedy = all.iter().filter(|turn| turn.customer == greedy);
    assert_eq!(of_greedy.count(), 13, "with everything below it");
    assert!(all.contains(&WorkTurn {
        tenant: late,
        customer: late
    }));
}
